-- Indexes a mailbox: for each message its offset, its subject's key and its number of lines.
local path = "box.mbox"

local function generate(messages)
  local f = assert(io.open(path, "w"))
  for i = 1, messages do
    f:write("From user", i, "@example.org\n", "Subject: offer ", i * 7 % 101, "\n\n")
    for l = 1, 12 do
      f:write("line ", l, " of message ", i, ": the quick brown fox and ", i * l % 977, " dogs\n")
    end
  end
  f:close()
end

local function hash(s)
  local h = 5381
  for i = 1, #s do
    h = (h * 33 ~ s:byte(i)) & 0xffffffff
  end
  return h
end

local function index()
  local f = assert(io.open(path, "r"))
  local list, current = {}, nil
  local at = 0
  for line in f:lines() do
    if line:find("^From ") then
      current = { at = at, lines = 0, key = 0, sum = 0 }
      list[#list + 1] = current
    elseif line:find("^Subject:") then
      current.key = hash(line:sub(10))
    else
      current.lines = current.lines + 1
      current.sum = (current.sum + hash(line:lower():gsub("%s+", " "))) & 0xffffffff
    end
    at = at + #line + 1
  end
  f:close()
  return list
end

generate(5000)
local list = index()
os.remove(path)
local total, keys = 0, {}
for _, m in ipairs(list) do
  total = (total + m.at + m.sum) & 0xffffffff
  keys[m.key] = true
end
local n = 0
for _ in pairs(keys) do n = n + 1 end
print(#list .. " messages, " .. n .. " subjects, check " .. total)
