require 'socket'

# A client of an instrument's text protocol: a reply is some lines and ends with "OK".
class Instrument
  def initialize(port)
    @sock = TCPSocket.new('127.0.0.1', port)
    @sock.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
  end

  def query(cmd)
    @sock.write("#{cmd}\n")
    reply = +''
    while @sock.wait_readable(0.1)
      reply << @sock.readpartial(4096)
    end
    reply.lines(chomp: true)[0..-2]
  end

  def close
    @sock.close
  end
end

def simulate(server)
  c = server.accept
  while (cmd = c.gets)
    lines = (1..cmd.size % 4 + 1).map { |i| "#{cmd.chomp} #{i * cmd.sum % 89}" }
    c.write(lines.join("\n") + "\nOK\n")
  end
end

require 'io/wait'
server = TCPServer.new('127.0.0.1', 0)
port = server.addr[1]
pid = fork { simulate(server) }
server.close
dev = Instrument.new(port)
14.times do |i|
  cmd = %w[MEAS:VOLT? MEAS:CURR? STAT:OPER? SYST:ERR?][i % 4]
  puts "#{i}: #{dev.query(cmd).join(', ')}"
end
dev.close
Process.wait(pid)
