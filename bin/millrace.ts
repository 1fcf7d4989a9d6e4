#!/usr/bin/env node
import { main } from '../src/cli/main.ts'
import { extensions } from './extensions.ts'

await main(extensions)
