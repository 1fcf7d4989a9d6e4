-- Written by commit 1f4007d.
-- {"01M7MZVJFT84KFVMTAJRPC8CN9":"completed","01M7MZVJGF1KB8EWGHSY1S60WK":"dead_letter","01M7MZVJGJ9SRRQWMRS8ZQEKRN":"dead_letter","01M7MZVJHEE3T5F8T3P6YCZG0B":"completed","01M7MZVJHWWY2NAQBAZ1KANCTT":"superseded","01M7MZVJXC370AVP293T4PFPSJ":"completed","01M7MZVK3AJ6ZFA6V0CATY27XF":"completed","01M7MZVK84BEJX9HSQZFE79YRF":"cancelled","01M7MZVKCWGWEEZCCMZYDBQQ32":"superseded","01M7MZVKJPJRTECMJ5RCFCP98N":"completed","01M7MZVKN72W78CHZZCRT4SW7T":"completed","01M7MZVKNJ2B9JJTK8HAD2H2XV":"completed","01M7MZVKNZ3MT10S39E97M7A8J":"completed"}
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE millrace_schema (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at TEXT NOT NULL);
INSERT INTO millrace_schema VALUES(1,'job-queue','2026-11-17T14:51:26.039Z');
INSERT INTO millrace_schema VALUES(2,'presence','2026-11-17T14:51:26.039Z');
INSERT INTO millrace_schema VALUES(3,'outbox','2026-11-17T14:51:26.039Z');
INSERT INTO millrace_schema VALUES(4,'clock','2026-11-17T14:51:26.039Z');
INSERT INTO millrace_schema VALUES(5,'latest-keys','2026-11-17T14:51:26.039Z');
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
INSERT INTO job_queue VALUES('01M7MZVJFT84KFVMTAJRPC8CN9','recorded','completed',5,'2026-11-17T14:51:26.083Z',NULL,NULL,'{"deed":"fine"}',NULL,1,2,NULL,'2026-11-17T14:51:26.083Z','2026-11-17T14:51:26.208Z','2026-11-17T14:51:26.202Z','2026-11-17T14:51:26.208Z','{"deed":"fine"}',NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,1,'vm:25804:d8e89a25',NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZVJGF1KB8EWGHSY1S60WK','recorded','dead_letter',5,'2026-11-17T14:51:26.218Z',NULL,NULL,'{"deed":"die"}',NULL,2,2,'this one always fails','2026-11-17T14:51:26.096Z','2026-11-17T14:51:26.416Z','2026-11-17T14:51:26.219Z','2026-11-17T14:51:26.416Z',NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,'{"name":"Error","code":null,"message":"this one always fails","stack":"Error: this one always fails\n    at run (file:///work/wt/upgrade/test/upgrade/record.ts:23:31)\n    at enter (file:///tmp/upg/old/1f4007d/src/worker/current.ts:42:10)\n    at AsyncResource.runInAsyncScope (node:async_hooks:227:14)\n    at JobScope.run (file:///tmp/upg/old/1f4007d/src/worker/current.ts:36:27)\n    at #call (file:///tmp/upg/old/1f4007d/src/worker/execution.ts:116:54)\n    at #run (file:///tmp/upg/old/1f4007d/src/worker/execution.ts:86:15)\n    at Execution.start (file:///tmp/upg/old/..."}',NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZVJGJ9SRRQWMRS8ZQEKRN','recorded','dead_letter',5,'2026-11-17T14:51:26.218Z',NULL,NULL,'{"deed":"die"}',NULL,2,2,'this one always fails','2026-11-17T14:51:26.109Z','2026-11-17T14:51:26.416Z','2026-11-17T14:51:26.219Z','2026-11-17T14:51:26.416Z',NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,'{"name":"Error","code":null,"message":"this one always fails","stack":"Error: this one always fails\n    at run (file:///work/wt/upgrade/test/upgrade/record.ts:23:31)\n    at enter (file:///tmp/upg/old/1f4007d/src/worker/current.ts:42:10)\n    at AsyncResource.runInAsyncScope (node:async_hooks:227:14)\n    at JobScope.run (file:///tmp/upg/old/1f4007d/src/worker/current.ts:36:27)\n    at #call (file:///tmp/upg/old/1f4007d/src/worker/execution.ts:116:54)\n    at #run (file:///tmp/upg/old/1f4007d/src/worker/execution.ts:86:15)\n    at Execution.start (file:///tmp/upg/old/..."}','dead-key',0,NULL);
INSERT INTO job_queue VALUES('01M7MZVJHEE3T5F8T3P6YCZG0B','recorded','in_progress',5,'2026-11-17T14:51:26.131Z','vm:25804:d8e89a25','2026-11-17T14:52:26.202Z','{"deed":"hang"}',NULL,1,2,NULL,'2026-11-17T14:51:26.131Z','2026-11-17T14:51:26.202Z','2026-11-17T14:51:26.202Z',NULL,NULL,'p1PethYgoW03',0,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZVJHWWY2NAQBAZ1KANCTT','recorded','in_progress',5,'2026-11-17T14:51:26.140Z','vm:25804:d8e89a25','2026-11-17T14:52:26.209Z','{"deed":"hang"}',NULL,1,2,NULL,'2026-11-17T14:51:26.140Z','2026-11-17T14:51:26.209Z','2026-11-17T14:51:26.209Z',NULL,NULL,'uPkpPD5rhD96',0,'document-1',1,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZVJXC370AVP293T4PFPSJ','later','queued',1,'2026-11-17T14:51:26.508Z',NULL,NULL,'{"n":1}','live-key',0,3,NULL,'2026-11-17T14:51:26.508Z','2026-11-17T14:51:26.508Z',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZVK3AJ6ZFA6V0CATY27XF','later','queued',5,'2026-11-17T14:52:26.699Z',NULL,NULL,'{"n":2}',NULL,0,3,NULL,'2026-11-17T14:51:26.699Z','2026-11-17T14:51:26.699Z',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZVK84BEJX9HSQZFE79YRF','later','dead_letter',5,'2026-11-17T14:51:26.853Z',NULL,NULL,'{"n":3}',NULL,0,3,NULL,'2026-11-17T14:51:26.853Z','2026-11-17T14:51:26.932Z',NULL,'2026-11-17T14:51:26.932Z',NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,'cancelled');
INSERT INTO job_queue VALUES('01M7MZVKJPJRTECMJ5RCFCP98N','later','queued',5,'2026-11-17T14:51:27.026Z',NULL,NULL,'{"n":5}',NULL,0,3,NULL,'2026-11-17T14:51:27.190Z','2026-11-17T14:51:27.190Z',NULL,NULL,NULL,NULL,0,'document-2',2,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZVKCWGWEEZCCMZYDBQQ32','later','dead_letter',5,'2026-11-17T14:51:27.026Z',NULL,NULL,'{"n":4}',NULL,0,3,NULL,'2026-11-17T14:51:27.026Z','2026-11-17T14:51:27.190Z',NULL,'2026-11-17T14:51:27.190Z',NULL,NULL,0,'document-2',1,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,'superseded');
INSERT INTO job_queue VALUES('01M7MZVKN72W78CHZZCRT4SW7T','recorded','queued',5,'2026-11-17T14:51:27.271Z',NULL,NULL,'{"deed":"fine"}',NULL,0,2,NULL,'2026-11-17T14:51:27.271Z','2026-11-17T14:51:27.271Z',NULL,NULL,NULL,NULL,1,'document-1',2,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZVKNJ2B9JJTK8HAD2H2XV','later','queued',5,'2026-11-17T14:52:27.282Z',NULL,NULL,'{"n":6}',NULL,0,3,NULL,'2026-11-17T14:51:27.282Z','2026-11-17T14:51:27.282Z',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZVKNZ3MT10S39E97M7A8J','later','queued',5,'2026-11-17T14:51:27.295Z',NULL,NULL,'{"n":7}',NULL,0,3,NULL,'2026-11-17T14:51:27.295Z','2026-11-17T14:51:27.295Z',NULL,NULL,NULL,NULL,1,NULL,NULL,'{"ids":["01M7MZVKNJ2B9JJTK8HAD2H2XV"],"ifDead":"wait"}',NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
CREATE TABLE job_events (
  seq INTEGER PRIMARY KEY,
  job_id TEXT NOT NULL,
  at TEXT NOT NULL,
  name TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  worker TEXT,
  detail TEXT
);
INSERT INTO job_events VALUES(1,'01M7MZVJGF1KB8EWGHSY1S60WK','2026-11-17T14:51:26.208Z','failed',1,'vm:25804:d8e89a25','{"name":"Error","code":null,"message":"this one always fails","startedAtMs":1794927086202}');
INSERT INTO job_events VALUES(2,'01M7MZVJGF1KB8EWGHSY1S60WK','2026-11-17T14:51:26.208Z','retried',1,'vm:25804:d8e89a25','{"delayMs":10}');
INSERT INTO job_events VALUES(3,'01M7MZVJGJ9SRRQWMRS8ZQEKRN','2026-11-17T14:51:26.208Z','failed',1,'vm:25804:d8e89a25','{"name":"Error","code":null,"message":"this one always fails","startedAtMs":1794927086202}');
INSERT INTO job_events VALUES(4,'01M7MZVJGJ9SRRQWMRS8ZQEKRN','2026-11-17T14:51:26.208Z','retried',1,'vm:25804:d8e89a25','{"delayMs":10}');
INSERT INTO job_events VALUES(5,'01M7MZVJGF1KB8EWGHSY1S60WK','2026-11-17T14:51:26.416Z','failed',2,'vm:25804:d8e89a25','{"name":"Error","code":null,"message":"this one always fails","startedAtMs":1794927086219}');
INSERT INTO job_events VALUES(6,'01M7MZVJGF1KB8EWGHSY1S60WK','2026-11-17T14:51:26.416Z','dead',2,'vm:25804:d8e89a25',NULL);
INSERT INTO job_events VALUES(7,'01M7MZVJGJ9SRRQWMRS8ZQEKRN','2026-11-17T14:51:26.416Z','failed',2,'vm:25804:d8e89a25','{"name":"Error","code":null,"message":"this one always fails","startedAtMs":1794927086219}');
INSERT INTO job_events VALUES(8,'01M7MZVJGJ9SRRQWMRS8ZQEKRN','2026-11-17T14:51:26.416Z','dead',2,'vm:25804:d8e89a25',NULL);
INSERT INTO job_events VALUES(9,'01M7MZVK84BEJX9HSQZFE79YRF','2026-11-17T14:51:26.932Z','cancelled',0,NULL,'{"who":"ann","reason":"recorded","startedAtMs":null}');
INSERT INTO job_events VALUES(10,'01M7MZVKCWGWEEZCCMZYDBQQ32','2026-11-17T14:51:27.190Z','superseded',0,NULL,'{"by":"01M7MZVKJPJRTECMJ5RCFCP98N"}');
CREATE TABLE job_latest (
  type TEXT NOT NULL,
  latest_key TEXT NOT NULL,
  seq INTEGER NOT NULL, idle_since TEXT,
  PRIMARY KEY (type, latest_key)
) WITHOUT ROWID;
INSERT INTO job_latest VALUES('later','document-2',2,NULL);
INSERT INTO job_latest VALUES('recorded','document-1',2,NULL);
CREATE TABLE job_after (
  after_id TEXT NOT NULL,
  job_id TEXT NOT NULL,
  if_dead TEXT NOT NULL,
  held INTEGER NOT NULL,
  PRIMARY KEY (after_id, job_id)
) WITHOUT ROWID;
INSERT INTO job_after VALUES('01M7MZVKNJ2B9JJTK8HAD2H2XV','01M7MZVKNZ3MT10S39E97M7A8J','wait',1);
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
, subject TEXT);
INSERT INTO job_audit VALUES(1,'2026-11-17T14:51:27.356Z','ann','recorded','pause','','paused','{}',NULL,NULL);
CREATE TABLE millrace_schedules (
  name TEXT PRIMARY KEY,
  revision TEXT NOT NULL,
  next_at_ms INTEGER,
  body TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO millrace_schedules VALUES('nightly','07ba566c-512e-49c1-b248-88d236d0b843',1794970800000,'{"cron":"0 3 * * *","tz":"UTC","startMs":null,"endMs":null,"limit":null,"missed":"one","overlap":"skip","payload":{"n":8},"options":{},"type":"later","defaults":null,"paused":false,"runs":0,"skips":0,"missedTicks":0,"lastTickMs":null,"lastJobId":null,"declared":null}');
CREATE TABLE millrace_leaders (
  office TEXT PRIMARY KEY,
  holder TEXT,
  number INTEGER NOT NULL,
  lease_ms INTEGER NOT NULL,
  until_ms INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO millrace_leaders VALUES('keeper:reap+schedules+retention','vm:25804:d8e89a25',1,7500,1794927093687);
CREATE TABLE job_starts (
  type TEXT NOT NULL,
  at_ms INTEGER NOT NULL,
  starts INTEGER NOT NULL
);
CREATE TABLE millrace_presence (
  worker TEXT NOT NULL,
  type TEXT NOT NULL,
  beat TEXT NOT NULL,
  at_ms INTEGER NOT NULL,
  until_ms INTEGER NOT NULL,
  PRIMARY KEY (worker, type)
) WITHOUT ROWID;
INSERT INTO millrace_presence VALUES('vm:25804:d8e89a25','recorded','{"timestamp":"2026-11-17T14:51:26.164Z","status":"RUNNING","last_message_at":null,"consumer_lag":null,"work":{"host":"vm","pid":25804,"process":"ea4b2887-7a9b-4211-900f-5c310fa7f132","startedAtMs":1794927086163,"concurrency":4,"running":0,"jobs":[]}}',1794927086164,1794927116187);
CREATE TABLE millrace_pauses (
  type TEXT PRIMARY KEY,
  who TEXT NOT NULL,
  reason TEXT NOT NULL,
  since_ms INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO millrace_pauses VALUES('paused','ann','recorded',1794927087347);
CREATE TABLE millrace_outbox (
  seq INTEGER PRIMARY KEY,
  outbox TEXT NOT NULL,
  id TEXT NOT NULL,
  job TEXT NOT NULL,
  added_at_ms INTEGER NOT NULL
);
CREATE TABLE millrace_clock (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  timeline TEXT NOT NULL,
  offset_ms REAL NOT NULL,
  stepped_at_ms INTEGER,
  step_ms INTEGER
);
INSERT INTO millrace_clock VALUES(1,'linux 4ef89e37-72c4-4c74-8862-a966e4a15b74 time:[4026531834]',1794923135406.1909179,NULL,NULL);
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
CREATE INDEX idx_millrace_outbox_order ON millrace_outbox(outbox, seq);
COMMIT;

