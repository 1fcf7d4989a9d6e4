import { exercise } from '../exercise.ts'
import { postgresHarness } from './postgres.ts'

exercise('postgres', () => postgresHarness())
