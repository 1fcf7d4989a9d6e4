-- Written by commit 9db5e02.
-- {"01M7MZV7C752XADY1T529MP8R6":"completed","01M7MZV7CKM8S4MYH5A638J1CX":"dead_letter","01M7MZV7CQD09TA1RKDWZFN0Q0":"dead_letter","01M7MZV7D312E18ZXSS5TCJPMS":"completed","01M7MZV7DCP0G6RJ6H651XD50D":"superseded","01M7MZV7MHQ4ADHKS49MRZKZ1N":"completed","01M7MZV7N25J2W0XMM2BHH9MY4":"completed","01M7MZV7N6354FFZGJPSGDJ2MF":"cancelled","01M7MZV7NCJ7E6W0HR59CF491Y":"superseded","01M7MZV7NMJ5C6WXYNTK90JPYX":"completed","01M7MZV7NRH63RB59JHZNPER6S":"completed","01M7MZV7NS8ZGSRAGJRZC0JKVB":"completed","01M7MZV7NV4G5HF05NPZX44BB4":"completed"}
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE millrace_schema (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at TEXT NOT NULL);
INSERT INTO millrace_schema VALUES(1,'job-queue','2026-11-17T14:51:14.665Z');
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
, lease_token TEXT, waiting_for INTEGER NOT NULL DEFAULT 0, latest_key TEXT, latest_seq INTEGER, tenant TEXT, options TEXT, payload_version INTEGER NOT NULL DEFAULT 1, progress TEXT, duration_ms INTEGER, completed_by TEXT, error_record TEXT, released_key TEXT, ended TEXT CHECK (ended IN ('cancelled', 'superseded', 'discarded')));
INSERT INTO job_queue VALUES('01M7MZV7C752XADY1T529MP8R6','recorded','completed',5,'2026-11-17T14:51:14.699Z',NULL,NULL,'{"deed":"fine"}',NULL,1,2,NULL,'2026-11-17T14:51:14.699Z','2026-11-17T14:51:14.916Z','2026-11-17T14:51:14.844Z','2026-11-17T14:51:14.916Z','{"deed":"fine"}',NULL,0,NULL,NULL,NULL,NULL,1,NULL,43,'vm:25545:5faee240',NULL,NULL,NULL);
INSERT INTO job_queue VALUES('01M7MZV7CKM8S4MYH5A638J1CX','recorded','dead_letter',5,'2026-11-17T14:51:14.926Z',NULL,NULL,'{"deed":"die"}',NULL,2,2,'this one always fails','2026-11-17T14:51:14.707Z','2026-11-17T14:51:14.931Z','2026-11-17T14:51:14.928Z','2026-11-17T14:51:14.931Z',NULL,NULL,0,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,'{"name":"Error","code":null,"message":"this one always fails","stack":"Error: this one always fails\n    at run (file:///app/record.ts:23:31)\n    at AsyncLocalStorage.run (node:internal/async_local_storage/async_context_frame:65:14)\n    at runAsCurrent (file:///app/src/worker/current.ts:22:18)\n    at #run (file:///app/src/worker/execution.ts:67:28)"}',NULL,NULL);
INSERT INTO job_queue VALUES('01M7MZV7CQD09TA1RKDWZFN0Q0','recorded','dead_letter',5,'2026-11-17T14:51:14.926Z',NULL,NULL,'{"deed":"die"}',NULL,2,2,'this one always fails','2026-11-17T14:51:14.714Z','2026-11-17T14:51:14.931Z','2026-11-17T14:51:14.928Z','2026-11-17T14:51:14.931Z',NULL,NULL,0,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,'{"name":"Error","code":null,"message":"this one always fails","stack":"Error: this one always fails\n    at run (file:///app/record.ts:23:31)\n    at AsyncLocalStorage.run (node:internal/async_local_storage/async_context_frame:65:14)\n    at runAsCurrent (file:///app/src/worker/current.ts:22:18)\n    at #run (file:///app/src/worker/execution.ts:67:28)"}','dead-key',NULL);
INSERT INTO job_queue VALUES('01M7MZV7D312E18ZXSS5TCJPMS','recorded','in_progress',5,'2026-11-17T14:51:14.724Z','vm:25545:5faee240','2026-11-17T14:52:14.844Z','{"deed":"hang"}',NULL,1,2,NULL,'2026-11-17T14:51:14.724Z','2026-11-17T14:51:14.844Z','2026-11-17T14:51:14.844Z',NULL,NULL,'PwIGErZgXZ0E',0,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO job_queue VALUES('01M7MZV7DCP0G6RJ6H651XD50D','recorded','in_progress',5,'2026-11-17T14:51:14.733Z','vm:25545:5faee240','2026-11-17T14:52:14.915Z','{"deed":"hang"}',NULL,1,2,NULL,'2026-11-17T14:51:14.733Z','2026-11-17T14:51:14.915Z','2026-11-17T14:51:14.915Z',NULL,NULL,'yq2NXDORaY4Z',0,'document-1',1,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO job_queue VALUES('01M7MZV7MHQ4ADHKS49MRZKZ1N','later','queued',1,'2026-11-17T14:51:14.963Z',NULL,NULL,'{"n":1}','live-key',0,3,NULL,'2026-11-17T14:51:14.963Z','2026-11-17T14:51:14.963Z',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO job_queue VALUES('01M7MZV7N25J2W0XMM2BHH9MY4','later','queued',5,'2026-11-17T14:52:14.979Z',NULL,NULL,'{"n":2}',NULL,0,3,NULL,'2026-11-17T14:51:14.979Z','2026-11-17T14:51:14.979Z',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO job_queue VALUES('01M7MZV7N6354FFZGJPSGDJ2MF','later','dead_letter',5,'2026-11-17T14:51:14.983Z',NULL,NULL,'{"n":3}',NULL,0,3,NULL,'2026-11-17T14:51:14.983Z','2026-11-17T14:51:14.986Z',NULL,'2026-11-17T14:51:14.986Z',NULL,NULL,0,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,'cancelled');
INSERT INTO job_queue VALUES('01M7MZV7NMJ5C6WXYNTK90JPYX','later','queued',5,'2026-11-17T14:51:14.988Z',NULL,NULL,'{"n":5}',NULL,0,3,NULL,'2026-11-17T14:51:14.996Z','2026-11-17T14:51:14.996Z',NULL,NULL,NULL,NULL,0,'document-2',2,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO job_queue VALUES('01M7MZV7NCJ7E6W0HR59CF491Y','later','dead_letter',5,'2026-11-17T14:51:14.988Z',NULL,NULL,'{"n":4}',NULL,0,3,NULL,'2026-11-17T14:51:14.988Z','2026-11-17T14:51:14.996Z',NULL,'2026-11-17T14:51:14.996Z',NULL,NULL,0,'document-2',1,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,'superseded');
INSERT INTO job_queue VALUES('01M7MZV7NRH63RB59JHZNPER6S','recorded','queued',5,'2026-11-17T14:51:15.000Z',NULL,NULL,'{"deed":"fine"}',NULL,0,2,NULL,'2026-11-17T14:51:15.000Z','2026-11-17T14:51:15.000Z',NULL,NULL,NULL,NULL,1,'document-1',2,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO job_queue VALUES('01M7MZV7NS8ZGSRAGJRZC0JKVB','later','queued',5,'2026-11-17T14:52:15.002Z',NULL,NULL,'{"n":6}',NULL,0,3,NULL,'2026-11-17T14:51:15.002Z','2026-11-17T14:51:15.002Z',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO job_queue VALUES('01M7MZV7NV4G5HF05NPZX44BB4','later','queued',5,'2026-11-17T14:51:15.003Z',NULL,NULL,'{"n":7}',NULL,0,3,NULL,'2026-11-17T14:51:15.003Z','2026-11-17T14:51:15.003Z',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE job_events (
  seq INTEGER PRIMARY KEY,
  job_id TEXT NOT NULL,
  at TEXT NOT NULL,
  name TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  worker TEXT,
  detail TEXT
);
INSERT INTO job_events VALUES(1,'01M7MZV7CKM8S4MYH5A638J1CX','2026-11-17T14:51:14.916Z','failed',1,'vm:25545:5faee240','{"name":"Error","code":null,"message":"this one always fails","startedAtMs":1794927074844}');
INSERT INTO job_events VALUES(2,'01M7MZV7CKM8S4MYH5A638J1CX','2026-11-17T14:51:14.916Z','retried',1,'vm:25545:5faee240','{"delayMs":10}');
INSERT INTO job_events VALUES(3,'01M7MZV7CQD09TA1RKDWZFN0Q0','2026-11-17T14:51:14.916Z','failed',1,'vm:25545:5faee240','{"name":"Error","code":null,"message":"this one always fails","startedAtMs":1794927074844}');
INSERT INTO job_events VALUES(4,'01M7MZV7CQD09TA1RKDWZFN0Q0','2026-11-17T14:51:14.916Z','retried',1,'vm:25545:5faee240','{"delayMs":10}');
INSERT INTO job_events VALUES(5,'01M7MZV7CKM8S4MYH5A638J1CX','2026-11-17T14:51:14.931Z','failed',2,'vm:25545:5faee240','{"name":"Error","code":null,"message":"this one always fails","startedAtMs":1794927074928}');
INSERT INTO job_events VALUES(6,'01M7MZV7CKM8S4MYH5A638J1CX','2026-11-17T14:51:14.931Z','dead',2,'vm:25545:5faee240',NULL);
INSERT INTO job_events VALUES(7,'01M7MZV7CQD09TA1RKDWZFN0Q0','2026-11-17T14:51:14.931Z','failed',2,'vm:25545:5faee240','{"name":"Error","code":null,"message":"this one always fails","startedAtMs":1794927074928}');
INSERT INTO job_events VALUES(8,'01M7MZV7CQD09TA1RKDWZFN0Q0','2026-11-17T14:51:14.931Z','dead',2,'vm:25545:5faee240',NULL);
INSERT INTO job_events VALUES(9,'01M7MZV7N6354FFZGJPSGDJ2MF','2026-11-17T14:51:14.986Z','cancelled',0,NULL,'{"who":"ann","reason":"recorded","startedAtMs":null}');
INSERT INTO job_events VALUES(10,'01M7MZV7NCJ7E6W0HR59CF491Y','2026-11-17T14:51:14.996Z','superseded',0,NULL,'{"by":"01M7MZV7NMJ5C6WXYNTK90JPYX"}');
CREATE TABLE job_latest (
  type TEXT NOT NULL,
  latest_key TEXT NOT NULL,
  seq INTEGER NOT NULL,
  PRIMARY KEY (type, latest_key)
) WITHOUT ROWID;
INSERT INTO job_latest VALUES('later','document-2',2);
INSERT INTO job_latest VALUES('recorded','document-1',2);
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
CREATE INDEX idx_job_queue_dead ON job_queue(completed_at, type)
  WHERE status = 'dead_letter' AND ended IS NULL;
CREATE TRIGGER job_queue_updated_at
AFTER UPDATE OF id, type, status, priority, scheduled_at, lease_owner, lease_until, payload, idempotency_key, attempts,
  max_retries, error, created_at, started_at, completed_at, result ON job_queue
FOR EACH ROW WHEN NEW.updated_at IS OLD.updated_at AND NEW.lease_token IS OLD.lease_token
BEGIN
  UPDATE job_queue SET updated_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now') WHERE rowid = NEW.rowid;
END;
CREATE INDEX idx_job_events_job ON job_events(job_id, seq);
CREATE INDEX idx_job_starts_type ON job_starts(type, at_ms);
COMMIT;

