/** Why a job waits where an operator has changed the limits of its type. */
import {
  beat,
  limit,
  NOW,
  override,
  peers,
  presence,
  type Row,
  running,
  testRows,
  view,
} from '../../test/fixtures/explained.ts'
import type { Beat } from '../engine/presence.ts'
import type { JobView } from '../job/job.ts'
import type { SharedSlots } from '../job/slots.ts'

const started = (id: string, agoMs: number): JobView => view({ id, state: 'completed', startedAtMs: NOW - agoMs })

const withSlots = (one: Beat, slots: SharedSlots): Beat =>
  one.work === undefined ? one : { ...one, work: { ...one.work, slots } }

const CHANGED: readonly Row[] = [
  {
    what: 'over a rate limit that an operator has set, without a definition',
    given: {
      definition: null,
      override: { ...override, limit },
      peers: peers({ completed: [started('y', 1), started('z', 2)] }),
    },
    reasons: ['limit-reached'],
    notes: ['limits-changed'],
  },
  {
    what: 'over the limit of its definition, which an operator has lifted',
    given: {
      definition: { limit, concurrency: null, slots: null },
      override: { ...override, limit: null },
      peers: peers({ completed: [started('y', 1), started('z', 2)] }),
    },
    reasons: ['due'],
  },
  {
    what: 'behind a concurrency that an operator has set',
    given: { presence: presence([beat({}, 1)]), override: { ...override, concurrency: 1 } },
    reasons: ['slots-busy'],
    notes: ['limits-changed'],
  },
  {
    what: 'behind slots over all workers that an operator has made fewer, while its worker has room',
    given: {
      definition: { limit: null, concurrency: null, slots: { max: 5, by: null } },
      override: { ...override, concurrency: 1 },
      presence: presence([beat({}, 1)]),
      peers: peers({ inProgress: [running('x')] }),
    },
    reasons: ['slots-taken'],
    main: { kind: 'slots-taken', max: 1 },
    notes: ['limits-changed'],
  },
  {
    what: 'behind slots over all workers that an operator has made fewer, as a worker says of its definition',
    given: {
      definition: null,
      override: { ...override, concurrency: 1 },
      presence: presence([withSlots(beat({}, 1), { max: 5, by: null })]),
      peers: peers({ inProgress: [running('x')] }),
    },
    reasons: ['slots-taken'],
    main: { kind: 'slots-taken', max: 1 },
    notes: ['limits-changed'],
  },
  {
    what: 'below slots over all workers that an operator has made more, or lifted',
    given: {
      definition: { limit: null, concurrency: null, slots: { max: 1, by: null } },
      override: { ...override, concurrency: null },
      presence: presence([beat({}, 1)]),
      peers: peers({ inProgress: [running('x')] }),
    },
    reasons: ['due'],
  },
]

testRows(CHANGED)
