local function convert_command(i)
  return string.format("(sleep 0.05; echo result %d; echo done %d) > out-%d.txt", i, i * 37 % 101, i)
end

local function exists(name)
  local f = io.open(name)
  if f then f:close() return true end
  return false
end

local function convert(i)
  local marker = "out-" .. i .. ".done"
  os.execute("{ " .. convert_command(i) .. "; touch " .. marker .. "; } &")
  while not exists(marker) do
    os.execute("sleep 0.3")
  end
  os.remove(marker)
  local f = io.open("out-" .. i .. ".txt")
  local text = f:read("a")
  f:close()
  os.remove("out-" .. i .. ".txt")
  return text
end

for i = 1, 5 do io.write(convert(i)) end
