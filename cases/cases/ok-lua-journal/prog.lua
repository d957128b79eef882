-- A stepwise importer: each step is written to a journal and must be readable there before the next begins,
-- since the auditor (another handle, here in the same program) decides from the journal how to go on.
local path = "import.journal"

local Journal = {}
Journal.__index = Journal

function Journal.open(name)
  return setmetatable({ file = assert(io.open(name, "w")), steps = 0 }, Journal)
end

function Journal:step(kind, value)
  self.steps = self.steps + 1
  self.file:write(self.steps, " ", kind, " ", value, "\n")
  self.file:flush()
end

function Journal:close()
  self.file:close()
end

local Auditor = {}
Auditor.__index = Auditor

function Auditor.open(name)
  return setmetatable({ file = assert(io.open(name, "r")), balance = 0, seen = 0 }, Auditor)
end

function Auditor:next()
  local line = self.file:read("l")
  if not line then
    error("step missing in the journal")
  end
  local n, kind, value = line:match("^(%d+) (%a+) (%d+)$")
  self.seen = tonumber(n)
  self.balance = self.balance + (kind == "credit" and value or -value)
  return self.balance < 0 and "credit" or "debit"
end

local function work(n)
  local h = n
  for i = 1, 300 do
    h = (h * 1103515245 + 12345 + i) % 2147483648
  end
  return h % 1000
end

local journal = Journal.open(path)
local auditor = Auditor.open(path)
local kind = "credit"
for i = 1, 20000 do
  journal:step(kind, work(i))
  kind = auditor:next()
end
journal:close()
auditor.file:close()
os.remove(path)
print("steps " .. journal.steps .. ", audited " .. auditor.seen .. ", balance " .. auditor.balance)
