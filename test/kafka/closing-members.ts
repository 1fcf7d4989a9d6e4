/** Joins groups and closes its members at every moment of it. Then nothing is left that keeps this process alive. */
import { setTimeout as pass } from 'node:timers/promises'
import { loadClient } from '../../src/engines/kafka/driver.ts'
import { GroupMember } from '../../src/engines/kafka/member.ts'
import { parseUrl } from '../../src/engines/kafka/options.ts'
import { systemClock } from '../../src/time/clock.ts'

const [url = '', topic = '', group = ''] = process.argv.slice(2)
const MEMBERS = 40
const STEP_MS = 6
const client = await loadClient()

for (let nth = 0; nth < MEMBERS; nth += 1) {
  const member = new GroupMember({
    client,
    options: parseUrl(`${url}?group=${group}-${nth}&session=60000&heartbeat=100`),
    clock: systemClock,
    worker: 'w',
    topics: [topic],
    existing: async () => [topic],
    onAssigned: () => {},
    onRevoking: async () => {},
    onLost: () => {},
    commit: async () => {},
    onSure: () => {},
    onTopics: () => {},
    onError: () => {},
  })
  // Whether it has come to join is not the point.
  const joining = member.join().catch(() => {})
  await pass(nth * STEP_MS)
  await member.close()
  await joining
}
console.log('closed')
