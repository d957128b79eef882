# A job runner: takes jobs from a list and runs them apart from the main process.
require 'json'
require 'zlib'

JOBS = (1..240).map { |i| { 'id' => i, 'kind' => %w[mail invoice thumb][i % 3], 'arg' => "user#{i * 7 % 50}" } }

def perform(job)
  text = "#{job['kind']} for #{job['arg']}"
  { 'id' => job['id'], 'check' => Zlib.crc32(text) % 10_000 }
end

class Runner
  def run(jobs)
    jobs.each_slice(2).flat_map { |pair| side_by_side(pair) }
  end

  def close; end

  private

  def side_by_side(pair)
    pair.map { |job| start(job) }.map do |pid, io|
      answer = JSON.parse(io.read)
      io.close
      Process.wait(pid)
      answer
    end
  end

  def start(job)
    r, w = IO.pipe
    pid = fork do
      r.close
      w.write JSON.generate(perform(job))
      w.close
      exit!(0)
    end
    w.close
    [pid, r]
  end
end

runner = Runner.new
results = runner.run(JOBS)
runner.close
puts "jobs #{results.size}, sum #{results.sum { |r| r['check'] }}, last #{results.last['id']}"
