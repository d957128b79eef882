# Charges each step's time by the clock that costs no system call.
spent = 0
Integer(ARGV[0]).times do
  before = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
  spent += Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) - before
end
puts spent > 0
