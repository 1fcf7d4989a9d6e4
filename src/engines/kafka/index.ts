export { KafkaEngine } from './engine.ts'
export { type KafkaOptions, parseUrl } from './options.ts'
