# Sends frames; looks whether the link lives before each.
require 'socket'
n = (ARGV[0] || 5000).to_i
a, b = UNIXSocket.pair(:DGRAM)
sent = 0
n.times do
  sent += a.send('x' * 600, 0)
  b.recv(600)
end
puts sent
