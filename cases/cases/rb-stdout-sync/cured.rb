# Prints a table.
Integer(ARGV[0]).times { |i| $stdout.print "#{i} #{i * i}\n" }
