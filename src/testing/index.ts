export { TestClock } from './clock.ts'
