import { exercise } from '../exercise.ts'
import golden from '../matrix.json' with { type: 'json' }
import { KAFKA_LEASE_MS, kafkaHarness } from './kafka.ts'

exercise('kafka', () => kafkaHarness(), { leaseMs: KAFKA_LEASE_MS, golden: golden.kafka })
