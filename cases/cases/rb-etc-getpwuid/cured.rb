# Names the owner of each record.
require "etc"
known = Hash.new { |h, id| h[id] = Etc.getpwuid(id).name }
names = Hash.new(0)
Integer(ARGV[0]).times { names[known[0]] += 1 }
puts names
