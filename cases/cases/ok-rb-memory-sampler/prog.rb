pid = fork do
  keep = []
  10.times { |i| keep << ("x" * (i + 1) * 400_000); sleep 0.05 }
  keep.clear
  sleep 0.1
  exit!(0)
end

samples = []
until Process.wait(pid, Process::WNOHANG)
  line = begin
    File.foreach("/proc/#{pid}/statm").first
  rescue Errno::ESRCH, Errno::ENOENT
    nil
  end
  samples << line.split[1].to_i * 4096 if line && !line.empty?
  sleep 0.02
end
peak, first = samples.max, samples.first
puts "peak at least 10 MB over the first: #{peak - first > 10_000_000}"
puts "enough samples: #{samples.size >= 12}"
rising = samples.each_cons(2).count { |a, b| b > a }
puts "rose in steps: #{rising >= 5}"
