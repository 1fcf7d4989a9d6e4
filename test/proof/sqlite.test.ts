import { playShortRound } from './short-round.ts'

// A01 A13 B02 B03 B85 B92 B139 B140 B165 B166 B193 X079 X080 A140 X066
playShortRound('no promise is broken on SQLite while processes, clocks and the file are struck', {
  engine: 'sqlite',
  seed: 20_261_121,
  nemeses: ['kill', 'pause', 'term', 'opening', 'rolling', 'block', 'versions', 'clock', 'drift', 'file-locked'],
  jobs: 600,
  faults: 10,
})
