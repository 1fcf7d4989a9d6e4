import { playShortRound } from './short-round.ts'

playShortRound(
  'no promise is broken in memory while workers come and go, the process stands still and its clock is set',
  {
    engine: 'memory',
    seed: 20_261_122,
    nemeses: ['pause', 'term', 'rolling', 'block', 'versions', 'clock', 'drift'],
    jobs: 600,
    faults: 7,
  },
)
