# Exports the stock of 250 articles from a key-value server that is one network hop (2 ms) away.
require 'socket'

STOCK = (0...250).to_h { |i| ["stock:#{i}", (i * 37 % 101).to_s] }

def serve(listener)
  s = listener.accept
  s.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
  buf = +''
  loop do
    buf << s.readpartial(65_536)
    sleep 0.002 # the way there and back
    answer = +''
    while (line = buf.slice!(/\A[^\n]*\n/))
      answer << STOCK.fetch(line.split[1], 'nil') << "\n"
    end
    s.write answer
  end
rescue EOFError
  s.close
end

class Store
  def initialize(port)
    @sock = TCPSocket.new('127.0.0.1', port)
    @sock.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
  end

  def fetch_all(keys)
    keys.map do |k|
      @sock.puts "GET #{k}"
      @sock.gets.to_i
    end
  end

  def close
    @sock.close
  end
end

listener = TCPServer.new('127.0.0.1', 0)
pid = fork { serve(listener) }
store = Store.new(listener.addr[1])
stock = store.fetch_all(STOCK.keys)
store.close
Process.wait(pid)
puts "articles #{stock.size}, pieces #{stock.sum}, sold out #{stock.count(0)}"
