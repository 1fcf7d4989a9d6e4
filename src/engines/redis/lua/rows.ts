import { compose, type Script } from '../scripts.ts'
import { HISTORY } from './history.ts'
import { LINKS } from './links.ts'
import { REMOVAL, REMOVAL_BULL } from './removal.ts'

/**
 * `rowOf(q, id)`: a job as the answer has it: queue, BullMQ's id, place, when its lock runs out ('' without one) and the
 * fields of its hash.
 */
const ROWS = `
local function rowOf(q, id)
  local key, place, runsOut = q.base .. id, placeOf(q, id), ''
  if place == 'active' then
    local left = call('PTTL', key .. ':lock')
    runsOut = left >= 0 and string.format('%.0f', now + left) or ''
  end
  return { q.name, id, place, runsOut, call('HGETALL', key) }
end
`

/** A script that reads jobs, with `find`, `placeOf` and `rowOf`. */
export function composeRead(name: string, lua: string): () => Script {
  return compose(name, REMOVAL_BULL, HISTORY, LINKS, REMOVAL, ROWS, lua)
}
