import { exercise } from '../exercise.ts'
import golden from '../matrix.json' with { type: 'json' }
import { sqliteHarness } from './sqlite.ts'

exercise('sqlite', () => sqliteHarness(), { golden: golden.sqlite })
