# Prices a day's orders and leaves an audit line for each.
require 'digest'
require 'json'

class Audit
  def initialize(path)
    @path = path
  end

  def log(event, fields)
    File.open(@path, 'a') { |f| f.puts "#{event} #{fields.to_json}" }
  end

  def close
  end
end

class Pricer
  RATES = { 'A' => 1.0, 'B' => 0.93, 'C' => 0.85 }.freeze

  def initialize(audit)
    @audit = audit
    @total = 0
  end

  def price(order)
    doc = JSON.generate(order)
    back = JSON.parse(doc)
    net = back['items'].sum { |i| (i['price'] * i['n'] * RATES.fetch(back['class'])).round }
    key = Digest::SHA256.hexdigest(doc)[0, 12]
    @total += net
    @audit.log('priced', id: order[:id], net: net, key: key)
  end

  attr_reader :total
end

def order(i)
  items = (0...25).map { |k| { sku: "sku-#{(i * 13 + k) % 500}", n: 1 + (k % 3), price: 100 + (i * k % 900) } }
  { id: i, class: 'ABC'[i % 3], items: items }
end

audit = Audit.new('audit.log')
pricer = Pricer.new(audit)
6000.times { |i| pricer.price(order(i)) }
audit.close
trail = File.read('audit.log')
File.delete('audit.log')
puts "total #{pricer.total}, trail #{trail.lines.size} lines, #{Digest::MD5.hexdigest(trail)}"
