# Appends each line to a log.
File.open("bin/log", "a") { |f| Integer(ARGV[0]).times { |i| f.write("line #{i}\n") } }
puts File.size("bin/log")
