require "timeout"
require "digest"

def parse(line)
  fields = line.split("|").map { |f| f.split("=", 2) }.to_h
  fields["body"] = fields["body"].scan(/\w+/).map(&:reverse).join(" ")
  20.times { fields["sum"] = Digest::MD5.hexdigest(fields["body"] + fields["sum"].to_s) }
  fields
end

mix = Digest::SHA256.new
Timeout.timeout(60) do
2500.times do |i|
  line = "id=#{i}|from=peer#{i % 31}|body=" + (0..60).map { |k| "w#{i * k % 71}" }.join(" ")
  m = parse(line)
  mix << m["sum"]
end
end
puts mix.hexdigest
