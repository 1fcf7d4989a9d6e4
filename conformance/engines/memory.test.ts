import { exercise } from '../exercise.ts'
import golden from '../matrix.json' with { type: 'json' }
import { memoryHarness } from './memory.ts'

exercise('memory', () => memoryHarness(), { golden: golden.memory })
