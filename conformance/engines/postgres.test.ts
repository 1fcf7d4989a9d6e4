import { exercise } from '../exercise.ts'
import golden from '../matrix.json' with { type: 'json' }
import { postgresHarness } from './postgres.ts'

exercise('postgres', () => postgresHarness(), { golden: golden.postgres })
