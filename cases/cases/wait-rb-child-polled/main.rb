# Starts children one by one and looks for the end of each.
n = ARGV[0].to_i
n.times do
  pid = fork { exit! 0 }
  if ARGV[1].nil?
    until Process.waitpid(pid, Process::WNOHANG)
      sleep 0.08
    end
  else
    Process.wait(pid)
  end
end
puts "#{n} children"
