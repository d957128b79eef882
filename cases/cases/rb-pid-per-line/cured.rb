# Puts its process id into each log line.
lines = []
pid, uid = Process.pid, Process.uid
Integer(ARGV[0]).times { |i| lines << "#{pid} #{uid} request #{i}" }
puts lines.uniq.size
