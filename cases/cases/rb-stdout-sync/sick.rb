# Prints a table with $stdout.sync on.
$stdout.sync = true
Integer(ARGV[0]).times { |i| $stdout.print "#{i} #{i * i}\n" }
