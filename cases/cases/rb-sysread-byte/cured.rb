# Counts lines.
File.write("bin/in", "a line of text\n" * 400)
puts File.read("bin/in").count("\n")
