-- Written by commit 592102d.
-- {"01M7MZV9NGBB2DA7SSB76B8WFB":"completed","01M7MZV9P7Q2BNJVQCF6FGFZY2":"dead_letter","01M7MZV9PD092SFHMPCGM5DDQS":"dead_letter","01M7MZV9PM29BN75J33RAKKH6H":"completed","01M7MZV9PQW7Q6CV0KVDR4EMFP":"superseded","01M7MZVA1GT6CF10M2AGY0XXXX":"completed","01M7MZVA50NV564NRM5S0FX2BF":"completed","01M7MZVA74NX2PSW5BWVZWJ1JZ":"cancelled","01M7MZVAD36WJ17AQYKKTKB0FN":"superseded","01M7MZVAFSTQZ0Y93EVTFZK4A3":"completed","01M7MZVAGW62APZR6A8GWGPV5D":"completed","01M7MZVAH315PRNVFS23CSD5PN":"completed","01M7MZVAH7SCAPG436TRC6YSHR":"completed"}
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE millrace_schema (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at TEXT NOT NULL);
INSERT INTO millrace_schema VALUES(1,'job-queue','2026-11-17T14:51:16.999Z');
CREATE TABLE job_queue (
  id TEXT PRIMARY KEY,
  type TEXT NOT NULL,
  status TEXT NOT NULL DEFAULT 'queued' CHECK (status IN ('queued', 'in_progress', 'completed', 'failed', 'dead_letter')),
  priority INTEGER NOT NULL DEFAULT 5 CHECK (priority >= 1 AND priority <= 10),
  scheduled_at TEXT NOT NULL,
  lease_owner TEXT,
  lease_until TEXT,
  payload TEXT NOT NULL,
  idempotency_key TEXT UNIQUE,
  attempts INTEGER NOT NULL DEFAULT 0,
  max_retries INTEGER NOT NULL DEFAULT 3,
  error TEXT,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  started_at TEXT,
  completed_at TEXT,
  result TEXT
, lease_token TEXT, waiting_for INTEGER NOT NULL DEFAULT 0, latest_key TEXT, latest_seq INTEGER, predecessors TEXT, tenant TEXT, options TEXT, payload_version INTEGER NOT NULL DEFAULT 1, progress TEXT, duration_ms INTEGER, completed_by TEXT, error_record TEXT, released_key TEXT, replays INTEGER NOT NULL DEFAULT 0, ended TEXT CHECK (ended IN ('cancelled', 'superseded', 'discarded')));
INSERT INTO job_queue VALUES('01M7MZV9NGBB2DA7SSB76B8WFB','recorded','completed',5,'2026-11-17T14:51:17.046Z',NULL,NULL,'{"deed":"fine"}',NULL,1,2,NULL,'2026-11-17T14:51:17.046Z','2026-11-17T14:51:17.221Z','2026-11-17T14:51:17.111Z','2026-11-17T14:51:17.221Z','{"deed":"fine"}',NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,106,'vm:25626:ae8cf1a7',NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZV9P7Q2BNJVQCF6FGFZY2','recorded','dead_letter',5,'2026-11-17T14:51:17.231Z',NULL,NULL,'{"deed":"die"}',NULL,2,2,'this one always fails','2026-11-17T14:51:17.063Z','2026-11-17T14:51:17.242Z','2026-11-17T14:51:17.234Z','2026-11-17T14:51:17.242Z',NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,'{"name":"Error","code":null,"message":"this one always fails","stack":"Error: this one always fails\n    at run (file:///work/wt/upgrade/test/upgrade/record.ts:23:31)\n    at AsyncLocalStorage.run (node:internal/async_local_storage/async_context_frame:65:14)\n    at runAsCurrent (file:///tmp/upg/old/592102d/src/worker/current.ts:22:18)\n    at #run (file:///tmp/upg/old/592102d/src/worker/execution.ts:77:28)"}',NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZV9PD092SFHMPCGM5DDQS','recorded','dead_letter',5,'2026-11-17T14:51:17.231Z',NULL,NULL,'{"deed":"die"}',NULL,2,2,'this one always fails','2026-11-17T14:51:17.070Z','2026-11-17T14:51:17.242Z','2026-11-17T14:51:17.234Z','2026-11-17T14:51:17.242Z',NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,'{"name":"Error","code":null,"message":"this one always fails","stack":"Error: this one always fails\n    at run (file:///work/wt/upgrade/test/upgrade/record.ts:23:31)\n    at AsyncLocalStorage.run (node:internal/async_local_storage/async_context_frame:65:14)\n    at runAsCurrent (file:///tmp/upg/old/592102d/src/worker/current.ts:22:18)\n    at #run (file:///tmp/upg/old/592102d/src/worker/execution.ts:77:28)"}','dead-key',0,NULL);
INSERT INTO job_queue VALUES('01M7MZV9PM29BN75J33RAKKH6H','recorded','in_progress',5,'2026-11-17T14:51:17.076Z','vm:25626:ae8cf1a7','2026-11-17T14:52:17.111Z','{"deed":"hang"}',NULL,1,2,NULL,'2026-11-17T14:51:17.076Z','2026-11-17T14:51:17.111Z','2026-11-17T14:51:17.111Z',NULL,NULL,'SHnOn8WwI1B-',0,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZV9PQW7Q6CV0KVDR4EMFP','recorded','in_progress',5,'2026-11-17T14:51:17.080Z','vm:25626:ae8cf1a7','2026-11-17T14:52:17.221Z','{"deed":"hang"}',NULL,1,2,NULL,'2026-11-17T14:51:17.080Z','2026-11-17T14:51:17.221Z','2026-11-17T14:51:17.221Z',NULL,NULL,'goOvXSOXJsT4',0,'document-1',1,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZVA1GT6CF10M2AGY0XXXX','later','queued',1,'2026-11-17T14:51:17.424Z',NULL,NULL,'{"n":1}','live-key',0,3,NULL,'2026-11-17T14:51:17.424Z','2026-11-17T14:51:17.424Z',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZVA50NV564NRM5S0FX2BF','later','queued',5,'2026-11-17T14:52:17.536Z',NULL,NULL,'{"n":2}',NULL,0,3,NULL,'2026-11-17T14:51:17.536Z','2026-11-17T14:51:17.536Z',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZVA74NX2PSW5BWVZWJ1JZ','later','dead_letter',5,'2026-11-17T14:51:17.671Z',NULL,NULL,'{"n":3}',NULL,0,3,NULL,'2026-11-17T14:51:17.671Z','2026-11-17T14:51:17.706Z',NULL,'2026-11-17T14:51:17.706Z',NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,'cancelled');
INSERT INTO job_queue VALUES('01M7MZVAFSTQZ0Y93EVTFZK4A3','later','queued',5,'2026-11-17T14:51:17.795Z',NULL,NULL,'{"n":5}',NULL,0,3,NULL,'2026-11-17T14:51:17.881Z','2026-11-17T14:51:17.881Z',NULL,NULL,NULL,NULL,0,'document-2',2,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZVAD36WJ17AQYKKTKB0FN','later','dead_letter',5,'2026-11-17T14:51:17.795Z',NULL,NULL,'{"n":4}',NULL,0,3,NULL,'2026-11-17T14:51:17.795Z','2026-11-17T14:51:17.881Z',NULL,'2026-11-17T14:51:17.881Z',NULL,NULL,0,'document-2',1,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,'superseded');
INSERT INTO job_queue VALUES('01M7MZVAGW62APZR6A8GWGPV5D','recorded','queued',5,'2026-11-17T14:51:17.917Z',NULL,NULL,'{"deed":"fine"}',NULL,0,2,NULL,'2026-11-17T14:51:17.917Z','2026-11-17T14:51:17.917Z',NULL,NULL,NULL,NULL,1,'document-1',2,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZVAH315PRNVFS23CSD5PN','later','queued',5,'2026-11-17T14:52:17.924Z',NULL,NULL,'{"n":6}',NULL,0,3,NULL,'2026-11-17T14:51:17.924Z','2026-11-17T14:51:17.924Z',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZVAH7SCAPG436TRC6YSHR','later','queued',5,'2026-11-17T14:51:17.927Z',NULL,NULL,'{"n":7}',NULL,0,3,NULL,'2026-11-17T14:51:17.927Z','2026-11-17T14:51:17.927Z',NULL,NULL,NULL,NULL,1,NULL,NULL,'{"ids":["01M7MZVAH315PRNVFS23CSD5PN"],"ifDead":"wait"}',NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
CREATE TABLE job_events (
  seq INTEGER PRIMARY KEY,
  job_id TEXT NOT NULL,
  at TEXT NOT NULL,
  name TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  worker TEXT,
  detail TEXT
);
INSERT INTO job_events VALUES(1,'01M7MZV9P7Q2BNJVQCF6FGFZY2','2026-11-17T14:51:17.221Z','failed',1,'vm:25626:ae8cf1a7','{"name":"Error","code":null,"message":"this one always fails","startedAtMs":1794927077111}');
INSERT INTO job_events VALUES(2,'01M7MZV9P7Q2BNJVQCF6FGFZY2','2026-11-17T14:51:17.221Z','retried',1,'vm:25626:ae8cf1a7','{"delayMs":10}');
INSERT INTO job_events VALUES(3,'01M7MZV9PD092SFHMPCGM5DDQS','2026-11-17T14:51:17.221Z','failed',1,'vm:25626:ae8cf1a7','{"name":"Error","code":null,"message":"this one always fails","startedAtMs":1794927077111}');
INSERT INTO job_events VALUES(4,'01M7MZV9PD092SFHMPCGM5DDQS','2026-11-17T14:51:17.221Z','retried',1,'vm:25626:ae8cf1a7','{"delayMs":10}');
INSERT INTO job_events VALUES(5,'01M7MZV9P7Q2BNJVQCF6FGFZY2','2026-11-17T14:51:17.242Z','failed',2,'vm:25626:ae8cf1a7','{"name":"Error","code":null,"message":"this one always fails","startedAtMs":1794927077234}');
INSERT INTO job_events VALUES(6,'01M7MZV9P7Q2BNJVQCF6FGFZY2','2026-11-17T14:51:17.242Z','dead',2,'vm:25626:ae8cf1a7',NULL);
INSERT INTO job_events VALUES(7,'01M7MZV9PD092SFHMPCGM5DDQS','2026-11-17T14:51:17.242Z','failed',2,'vm:25626:ae8cf1a7','{"name":"Error","code":null,"message":"this one always fails","startedAtMs":1794927077234}');
INSERT INTO job_events VALUES(8,'01M7MZV9PD092SFHMPCGM5DDQS','2026-11-17T14:51:17.242Z','dead',2,'vm:25626:ae8cf1a7',NULL);
INSERT INTO job_events VALUES(9,'01M7MZVA74NX2PSW5BWVZWJ1JZ','2026-11-17T14:51:17.706Z','cancelled',0,NULL,'{"who":"ann","reason":"recorded","startedAtMs":null}');
INSERT INTO job_events VALUES(10,'01M7MZVAD36WJ17AQYKKTKB0FN','2026-11-17T14:51:17.881Z','superseded',0,NULL,'{"by":"01M7MZVAFSTQZ0Y93EVTFZK4A3"}');
CREATE TABLE job_latest (
  type TEXT NOT NULL,
  latest_key TEXT NOT NULL,
  seq INTEGER NOT NULL,
  PRIMARY KEY (type, latest_key)
) WITHOUT ROWID;
INSERT INTO job_latest VALUES('later','document-2',2);
INSERT INTO job_latest VALUES('recorded','document-1',2);
CREATE TABLE job_after (
  after_id TEXT NOT NULL,
  job_id TEXT NOT NULL,
  if_dead TEXT NOT NULL,
  held INTEGER NOT NULL,
  PRIMARY KEY (after_id, job_id)
) WITHOUT ROWID;
INSERT INTO job_after VALUES('01M7MZVAH315PRNVFS23CSD5PN','01M7MZVAH7SCAPG436TRC6YSHR','wait',1);
CREATE TABLE job_audit (
  seq INTEGER PRIMARY KEY,
  at TEXT NOT NULL,
  who TEXT NOT NULL,
  reason TEXT NOT NULL,
  action TEXT NOT NULL,
  job_id TEXT NOT NULL,
  type TEXT NOT NULL,
  before TEXT NOT NULL,
  after TEXT
);
CREATE TABLE millrace_schedules (
  name TEXT PRIMARY KEY,
  revision TEXT NOT NULL,
  next_at_ms INTEGER,
  body TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO millrace_schedules VALUES('nightly','dda083a2-ef5a-4ae3-988e-8aa25d538df4',1794970800000,'{"cron":"0 3 * * *","tz":"UTC","startMs":null,"endMs":null,"limit":null,"missed":"one","overlap":"skip","payload":{"n":8},"options":{},"type":"later","defaults":null,"paused":false,"runs":0,"skips":0,"lastTickMs":null,"lastJobId":null,"declared":null}');
CREATE TABLE millrace_leaders (
  office TEXT PRIMARY KEY,
  holder TEXT,
  number INTEGER NOT NULL,
  lease_ms INTEGER NOT NULL,
  until_ms INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO millrace_leaders VALUES('keeper:reap+schedules+retention','vm:25626:ae8cf1a7',1,7500,1794927084611);
CREATE TABLE job_starts (
  type TEXT NOT NULL,
  at_ms INTEGER NOT NULL,
  starts INTEGER NOT NULL
);
CREATE INDEX idx_job_queue_dequeue ON job_queue(status, priority, scheduled_at) WHERE status = 'queued';
CREATE INDEX idx_job_queue_lease_expiry ON job_queue(lease_until) WHERE status = 'in_progress';
CREATE INDEX idx_job_queue_type ON job_queue(type, status);
CREATE INDEX idx_job_queue_idempotency ON job_queue(idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX idx_job_queue_claim ON job_queue(type, priority, scheduled_at)
  WHERE status = 'queued' AND waiting_for = 0;
CREATE INDEX idx_job_queue_latest ON job_queue(type, latest_key, status) WHERE latest_key IS NOT NULL;
CREATE INDEX idx_job_queue_dead ON job_queue(completed_at, id, type)
  WHERE status = 'dead_letter' AND ended IS NULL;
CREATE TRIGGER job_queue_updated_at
AFTER UPDATE OF id, type, status, priority, scheduled_at, lease_owner, lease_until, payload, idempotency_key, attempts,
  max_retries, error, created_at, started_at, completed_at, result ON job_queue
FOR EACH ROW WHEN NEW.updated_at IS OLD.updated_at AND NEW.lease_token IS OLD.lease_token
BEGIN
  UPDATE job_queue SET updated_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now') WHERE rowid = NEW.rowid;
END;
CREATE INDEX idx_job_events_job ON job_events(job_id, seq);
CREATE INDEX idx_job_after_job ON job_after(job_id, held);
CREATE INDEX idx_job_audit_job ON job_audit(job_id, seq);
CREATE TRIGGER job_audit_kept BEFORE DELETE ON job_audit
BEGIN SELECT RAISE(ABORT, 'job_audit is append-only'); END;
CREATE TRIGGER job_audit_unchanged BEFORE UPDATE ON job_audit
BEGIN SELECT RAISE(ABORT, 'job_audit is append-only'); END;
CREATE INDEX idx_job_starts_type ON job_starts(type, at_ms);
COMMIT;

