/** A member whose event loop stands still until it is told, and which then commits as if nothing had happened. */
import { parentPort, workerData } from 'node:worker_threads'
import { commitPinned, join, openMember, outcomeOf, pin, SESSION_MS } from './client.ts'

const { address, group, topic, flag } = workerData
const member = openMember({ address, url: `kafka://${address}` }, group, { sessionTimeout: SESSION_MS })
await join(member, topic)
const pinned = pin(member)
parentPort?.postMessage({ joined: pinned.member })
Atomics.wait(new Int32Array(flag), 0, 0)
const offsets = [0, 1].map((partition) => ({ partition, offset: 2n }))
const commit = await outcomeOf(commitPinned(member, pinned, topic, offsets))
parentPort?.postMessage({ memberId: pinned.member, commit })
member.on('consumer:group:join', ({ memberId }) => parentPort?.postMessage({ memberId, commit: '' }))
