import { playShortRound } from './short-round.ts'

// I1 I3 I5 I6
playShortRound('no promise is broken on Redis while processes, the wire and the server are struck', {
  engine: 'redis',
  seed: 20_261_124,
  nemeses: [
    ...['kill', 'pause', 'term', 'rolling', 'clock', 'wire-cut', 'wire-silent'],
    ...['redis-crash', 'redis-restart', 'redis-freeze'],
  ],
  jobs: 600,
  faults: 10,
})
