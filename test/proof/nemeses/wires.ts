/** Faults of the wire between the processes and their server. They strike every store that has one. */
import { systemClock } from '../../../src/time/clock.ts'
import type { Nemesis, Wire } from '../scene.ts'
import { between } from './random.ts'

function ofWire(
  name: string,
  does: string,
  act: (wire: Wire, random: () => number) => { readonly detail?: string; readonly begin: () => void },
  lastsMs: readonly [number, number],
): Nemesis {
  return {
    name,
    does,
    excuse: ({ wire }) => (wire === null ? 'the processes reach the store without a wire' : null),
    async strike({ store: { wire }, during }, random) {
      if (wire === null) throw new Error(`${name} needs a wire`)
      const { detail, begin } = act(wire, random)
      const forMs = between(random, ...lastsMs)
      await during({ nemesis: name, target: null, detail: `${forMs} ms${detail ?? ''}` }, async () => {
        begin()
        try {
          await systemClock.sleep(forMs)
        } finally {
          wire.mend()
        }
      })
    },
  }
}

export const wireNemeses: readonly Nemesis[] = [
  ofWire(
    'wire-cut',
    'resets every connection and refuses new ones for up to three seconds',
    (wire) => ({ begin: () => wire.cut() }),
    [0, 3_000],
  ),
  ofWire(
    'wire-silent',
    'lets every connection stand and passes nothing for up to four seconds',
    (wire) => ({ begin: () => wire.silence('both') }),
    [200, 4_000],
  ),
  ofWire(
    'wire-half-open-requests',
    'passes answers and no requests for up to four seconds',
    (wire) => ({ begin: () => wire.silence('to-server') }),
    [200, 4_000],
  ),
  ofWire(
    'wire-half-open-answers',
    'passes requests and no answers for up to four seconds',
    (wire) => ({ begin: () => wire.silence('to-client') }),
    [200, 4_000],
  ),
  ofWire(
    'wire-slow',
    'passes everything in one direction or both up to 400 ms late for up to four seconds',
    (wire, random) => {
      const direction = (['to-server', 'to-client', 'both'] as const)[Math.floor(random() * 3)] ?? 'both'
      const byMs = between(random, 20, 400)
      return { detail: `, ${direction} by ${byMs} ms`, begin: () => wire.slow(direction, byMs) }
    },
    [500, 4_000],
  ),
  ofWire(
    'wire-answers-lost',
    'resets each connection after a few more bytes from the server, for up to two seconds',
    (wire, random) => {
      const bytes = between(random, 0, 2_000)
      return { detail: `, after ${bytes} bytes`, begin: () => wire.cutAfter(bytes) }
    },
    [100, 2_000],
  ),
]
