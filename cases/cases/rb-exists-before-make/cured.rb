# Writes results; a name that is taken fails.
require "tmpdir"
made = 0
Dir.mktmpdir(nil, "/dev/shm") do |folder|
  Integer(ARGV[0]).times do |n|
    path = "#{folder}/r#{n}"
    IO.sysopen(path, File::WRONLY | File::CREAT | File::EXCL).then { |fd| IO.for_fd(fd).close }
    made += 1
  rescue Errno::EEXIST
    nil
  end
end
puts made
