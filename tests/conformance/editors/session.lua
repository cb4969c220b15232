-- A session in Neovim without a screen: nvim --headless -u NONE -l session.lua RECIPE MODEL; prints a line a stop.
-- It stands in for nvim-dap: it begins the adapter and the configuration of the recipe as that says in its :help.
local recipe, model = arg[1], arg[2]
local dap = { adapters = {}, configurations = {} }
package.loaded.dap = dap
dofile(recipe)

local SECONDS = 30
local heard, unread, sequence, channel = {}, "", 0, nil

local function read(_, parts)
  unread = unread .. table.concat(parts, "\n")
  while true do
    local head, last = unread:find("\r\n\r\n", 1, true)
    if not head then return end
    local length = tonumber(unread:sub(1, head):match("Content%-Length: (%d+)"))
    if #unread < last + length then return end
    table.insert(heard, vim.json.decode(unread:sub(last + 1, last + length)))
    unread = unread:sub(last + length + 1)
  end
end

-- the first message that fits, which is then taken away
local function taken(fits, what)
  local found
  local is_there = vim.wait(SECONDS * 1000, function()
    for index, one in ipairs(heard) do
      if fits(one) then
        found = table.remove(heard, index)
        return true
      end
    end
    return false
  end, 10)
  if not is_there then error("nothing comes: " .. what) end
  return found
end

local function ask(command, arguments)
  sequence = sequence + 1
  local number = sequence
  local text = vim.json.encode({ seq = number, type = "request", command = command, arguments = arguments or vim.empty_dict() })
  vim.fn.chansend(channel, ("Content-Length: %d\r\n\r\n%s"):format(#text, text))
  return function()
    local answer = taken(function(one) return one.type == "response" and one.request_seq == number end, command)
    if not answer.success then error(command .. ": " .. answer.message) end
    return answer.body
  end
end

local function event(name)
  return taken(function(one) return one.type == "event" and one.event == name end, name)
end

local function expanded(configuration)
  local found = {}
  for key, value in pairs(configuration) do
    if type(value) == "function" then value = value() end
    found[key] = value
  end
  return found
end

local listing
local function tell(verb)
  event("stopped")
  local frame = ask("stackTrace", { threadId = 1 })().stackFrames[1]
  listing = vim.fn.readfile(frame.source.path)
  print(("%s | %s | %s"):format(verb, frame.name, vim.trim(listing[frame.line])))
  return frame
end

local function move(verb, command)
  ask(command, { threadId = 1 })()
  tell(verb)
end

vim.cmd.edit(model)
vim.bo.filetype = "xml"
local configuration = expanded(dap.configurations[vim.bo.filetype][1])
local adapter = dap.adapters[configuration.type]
assert(adapter.type == "executable")
channel = vim.fn.jobstart({ adapter.command, unpack(adapter.args) }, { on_stdout = read })
ask("initialize", { adapterID = "nvim-dap", clientID = "neovim", linesStartAt1 = true, columnsStartAt1 = true, pathFormat = "path" })()
local launched = ask(configuration.request, configuration)
event("initialized")
launched()
ask("configurationDone")()
local frame = tell("launch")

-- the same configuration in the listing is of the same model
vim.cmd.edit(frame.source.path)
assert(expanded(dap.configurations.python[1]).model == configuration.model)
local line = vim.fn.search("^ *wkv = ")
ask("setBreakpoints", { source = { path = vim.fn.expand("%:p") }, breakpoints = { { line = line } } })()
move("continue", "continue")
move("next", "next")
move("step back", "stepBack")
move("continue", "continue")
move("reverse", "reverseContinue")
ask("disconnect", { terminateDebuggee = true })()
event("terminated")
vim.fn.jobstop(channel)
