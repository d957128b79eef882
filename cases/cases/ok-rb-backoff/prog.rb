require 'socket'

# Connects to a service that is being started (the child needs 0.7 s to replay its log), with growing pauses.
def service(port)
  sleep 0.7 # replays its log
  server = TCPServer.new('127.0.0.1', port)
  c = server.accept
  while (q = c.gets)
    c.puts(q.sum * 7 % 1000)
  end
end

def connect(port)
  pause = 0.02
  begin
    TCPSocket.new('127.0.0.1', port)
  rescue Errno::ECONNREFUSED
    sleep pause
    pause = [pause * 1.5, 0.15].min
    retry
  end
end

probe = TCPServer.new('127.0.0.1', 0)
port = probe.addr[1]
probe.close
pid = fork { service(port) }
s = connect(port)
12.times do |i|
  s.puts "lookup #{i}"
  puts "#{i}: #{s.gets}"
end
s.close
Process.wait(pid)
