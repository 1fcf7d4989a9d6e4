import { compose, GOES_ON_WHEN_FULL } from '../scripts.ts'

/**
 * Adds the run of one of BullMQ's job schedulers that comes after this one, unless somebody has. ARGV: time, queue,
 * BullMQ's id, scheduler, when by its pattern ('' where it has an interval, which BullMQ's script counts itself), the next
 * run's options as JSON.
 */
export const nextRunScript = compose(
  'next-run',
  { scripts: ['updateJobScheduler'] },
  GOES_ON_WHEN_FULL,
  `
local q, id, scheduler = queueOf(ARGV[2]), ARGV[3], ARGV[4]
-- What BullMQ 5 called a repeatable job has no count of its runs, and BullMQ 6 does not go on with it either.
if call('HEXISTS', q['repeat'] .. ':' .. scheduler, 'ic') == 0 then return 0 end
bull_updateJobScheduler(
  { q['repeat'], q.delayed, q.wait, q.paused, q.meta, q.prioritized, q.marker, q.id, q.events, q.pc, q.base .. id, q.active },
  { ARGV[5], scheduler, '', cmsgpack.pack(cjson.decode(ARGV[6])), now, q.base, id })
return 1
`,
)
