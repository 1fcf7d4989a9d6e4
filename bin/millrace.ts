import { main } from '../src/cli/program.ts'
import { extensions } from './extensions.ts'

await main(extensions)
