# Puts its process id into each log line.
lines = []
Integer(ARGV[0]).times { |i| lines << "#{Process.pid} #{Process.uid} request #{i}" }
puts lines.uniq.size
