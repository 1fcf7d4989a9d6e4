import type { JobLogs, KeptLine } from '../../engine/job-logs.ts'
import type { RedisDatabase } from './database.ts'
import { bullId, queueOf } from './keys.ts'
import { composeRead, listOf } from './rows.ts'
import { compose } from './scripts.ts'

/**
 * What handlers said, in BullMQ's log of the job between the lines of its history: BullMQ's dashboards show it, and BullMQ
 * removes it with the job. A line begins with its number.
 */
export function createLogs({ database }: { readonly database: RedisDatabase }): JobLogs {
  return {
    async append(said, keep) {
      const args = said.flatMap(({ job, skipped, lines }) => [
        queueOf(job.type),
        bullId(job.type, job.id),
        skipped,
        lines.length,
        ...lines,
      ])
      await database.run(appendScript(), [keep.lines, keep.bytes, ...args])
    },
    read: async (id) => listOf(await database.run(readScript(), [id])).flatMap(keptLine),
  }
}

function keptLine(text: unknown): readonly KeptLine[] {
  const [, seq, line] = /^\{"seq":(\d+),([\s\S]*)$/.exec(String(text)) ?? []
  return seq === undefined ? [] : [{ seq: Number(seq), line: `{${line}` }]
}

/**
 * ARGV: time, lines and bytes to keep, then for each job: queue, BullMQ's id, lines skipped, number of lines, lines. The list
 * is written anew where the oldest lines no longer fit (`newestLines` of engine/job-logs.ts): they stand between events.
 */
const appendScript = compose(
  'append-logs',
  {},
  `
local linesMax, bytesMax = tonumber(ARGV[2]), tonumber(ARGV[3])

local function seqOf(line)
  return tonumber(string.match(line, '^{"seq":(%d+),'))
end

-- The number of the newest line that no longer fits, or 0.
local function cutOf(all, last, bytes)
  for at = #all, 1, -1 do
    local seq = seqOf(all[at])
    if seq then bytes = bytes + #all[at] end
    if seq and (seq <= last - linesMax or bytes > bytesMax) then return seq end
  end
  return 0
end

local function append(log, skipped, from, count)
  local all, last, bytes, added = call('LRANGE', log, 0, -1), 0, 0, {}
  for at = #all, 1, -1 do
    last = seqOf(all[at]) or 0
    if last > 0 then break end
  end
  last = last + skipped
  for at = from, from + count - 1 do
    last = last + 1
    added[#added + 1] = '{"seq":' .. string.format('%.0f', last) .. ',' .. string.sub(ARGV[at], 2)
    bytes = bytes + #added[#added]
  end
  local cut, kept = cutOf(all, last, bytes), {}
  if cut > 0 then
    for _, line in ipairs(all) do
      if (seqOf(line) or last) > cut then kept[#kept + 1] = line end
    end
    call('DEL', log)
    if #kept > 0 then call('RPUSH', log, unpack(kept)) end
  end
  call('RPUSH', log, unpack(added))
end

local at = 4
while at <= #ARGV do
  local q, id, count = queueOf(ARGV[at]), ARGV[at + 1], tonumber(ARGV[at + 3])
  if call('HEXISTS', q.base .. id, 'name') == 1 then append(q.base .. id .. ':logs', tonumber(ARGV[at + 2]), at + 4, count) end
  at = at + 4 + count
end
return 1
`,
)

/** ARGV: time, id. Answers the lines of its log, or 0. */
const readScript = composeRead(
  'read-logs',
  `
local q, id = find(ARGV[2])
return q and call('LRANGE', q.base .. id .. ':logs', 0, -1) or 0
`,
)
