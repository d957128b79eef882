FORMULAS = (1..60).map { |i| i % 20 == 7 ? "loop { }" : "(1..#{i * 100}).sum { |k| k * #{i} % 97 }" }

def evaluate(text)
  r, w = IO.pipe
  pid = fork do
    r.close
    Process.setrlimit(:CPU, 1, 1) unless text.start_with?("loop")
    Process.setrlimit(:NOFILE, 16)
    w.write Marshal.dump(eval(text))
    w.close
    exit!(0)
  end
  w.close
  ready = IO.select([r], nil, nil, 0.12)
  Process.kill(:KILL, pid) unless ready
  answer = r.read
  r.close
  Process.wait(pid)
  answer.empty? ? "too long" : Marshal.load(answer)
end

FORMULAS.each_with_index { |f, i| puts "#{i} #{evaluate(f)}" }
