require "drb"

class Article
  include DRbUndumped
  attr_reader :name, :price, :stock, :shelf
  def initialize(i)
    @name, @price, @stock, @shelf = "article #{i}", i * 37 % 991, i % 7, "s#{i % 13}"
  end
end

class Shop
  include DRbUndumped
  def initialize = @articles = (0...400).map { |i| Article.new(i) }
  def article(i) = @articles[i]
  def size = @articles.size
end

r, w = IO.pipe
pid = fork do
  r.close
  DRb.start_service("druby://127.0.0.1:0", Shop.new)
  w.puts DRb.uri
  w.close
  DRb.thread.join
end
w.close
uri = r.gets.chomp
DRb.start_service("druby://127.0.0.1:0")
shop = DRbObject.new_with_uri(uri)
value = 0
shop.size.times do |i|
  item = shop.article(i)
  value += item.price * item.stock
  puts "#{item.name} on #{item.shelf}" if i % 100 == 0 || item.shelf == "s99"
end
puts value
Process.kill(:KILL, pid)
Process.wait(pid)
