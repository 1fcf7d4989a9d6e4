-- Written by commit d831645.
-- {"01M7MZVNSJC2GGCNA7AMY786D5":"completed","01M7MZVNTY9E4V2BTM0N3DA1C1":"dead_letter","01M7MZVNV48BAG7TK4BG6P2N31":"dead_letter","01M7MZVNV8T5NYRG5K21KRJQFP":"completed","01M7MZVNV9QV3QTM5HVCEKYJC8":"superseded","01M7MZVNXC5B6C583G8E4VR3SF":"completed","01M7MZVNXE5HTPAWNY031AYWFJ":"completed","01M7MZVNXHTFWNZG14AG174Z9A":"cancelled","01M7MZVNXK9V87XCBK1XH9GEHD":"superseded","01M7MZVNXN0T75PC4TH6MC4YCK":"completed","01M7MZVNY20K91ZZKT2QWAKGK0":"completed","01M7MZVNYJD59W7WRV3BCDTVDR":"completed","01M7MZVNZ7PN2KY72WET6N7DKG":"completed"}
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE millrace_schema (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at TEXT NOT NULL);
INSERT INTO millrace_schema VALUES(1,'job-queue','2026-11-17T14:51:29.384Z');
INSERT INTO millrace_schema VALUES(2,'presence','2026-11-17T14:51:29.384Z');
INSERT INTO millrace_schema VALUES(3,'outbox','2026-11-17T14:51:29.384Z');
INSERT INTO millrace_schema VALUES(4,'clock','2026-11-17T14:51:29.384Z');
INSERT INTO millrace_schema VALUES(5,'latest-keys','2026-11-17T14:51:29.384Z');
INSERT INTO millrace_schema VALUES(6,'records','2026-11-17T14:51:29.384Z');
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
INSERT INTO job_queue VALUES('01M7MZVNSJC2GGCNA7AMY786D5','recorded','completed',5,'2026-11-17T14:51:29.490Z',NULL,NULL,'{"deed":"fine"}',NULL,1,2,NULL,'2026-11-17T14:51:29.490Z','2026-11-17T14:51:29.534Z','2026-11-17T14:51:29.530Z','2026-11-17T14:51:29.534Z','{"deed":"fine"}',NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,1,'vm:25899:17cc8101',NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZVNTY9E4V2BTM0N3DA1C1','recorded','dead_letter',5,'2026-11-17T14:51:29.544Z',NULL,NULL,'{"deed":"die"}',NULL,2,2,'this one always fails','2026-11-17T14:51:29.503Z','2026-11-17T14:51:29.545Z','2026-11-17T14:51:29.544Z','2026-11-17T14:51:29.545Z',NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,'{"name":"Error","code":null,"message":"this one always fails","stack":"Error: this one always fails\n    at run (file:///work/wt/upgrade/test/upgrade/record.ts:23:31)\n    at enter (file:///tmp/upg/old/d831645/src/worker/context.ts:105:10)\n    at AsyncResource.runInAsyncScope (node:async_hooks:227:14)\n    at JobScope.run (file:///tmp/upg/old/d831645/src/worker/context.ts:99:27)\n    at #call (file:///tmp/upg/old/d831645/src/worker/execution.ts:114:54)\n    at #run (file:///tmp/upg/old/d831645/src/worker/execution.ts:84:15)\n    at Execution.start (file:///tmp/upg/old..."}',NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZVNV48BAG7TK4BG6P2N31','recorded','dead_letter',5,'2026-11-17T14:51:29.544Z',NULL,NULL,'{"deed":"die"}',NULL,2,2,'this one always fails','2026-11-17T14:51:29.508Z','2026-11-17T14:51:29.545Z','2026-11-17T14:51:29.544Z','2026-11-17T14:51:29.545Z',NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,'{"name":"Error","code":null,"message":"this one always fails","stack":"Error: this one always fails\n    at run (file:///work/wt/upgrade/test/upgrade/record.ts:23:31)\n    at enter (file:///tmp/upg/old/d831645/src/worker/context.ts:105:10)\n    at AsyncResource.runInAsyncScope (node:async_hooks:227:14)\n    at JobScope.run (file:///tmp/upg/old/d831645/src/worker/context.ts:99:27)\n    at #call (file:///tmp/upg/old/d831645/src/worker/execution.ts:114:54)\n    at #run (file:///tmp/upg/old/d831645/src/worker/execution.ts:84:15)\n    at Execution.start (file:///tmp/upg/old..."}','dead-key',0,NULL);
INSERT INTO job_queue VALUES('01M7MZVNV8T5NYRG5K21KRJQFP','recorded','in_progress',5,'2026-11-17T14:51:29.512Z','vm:25899:17cc8101','2026-11-17T14:52:29.530Z','{"deed":"hang"}',NULL,1,2,NULL,'2026-11-17T14:51:29.512Z','2026-11-17T14:51:29.530Z','2026-11-17T14:51:29.530Z',NULL,NULL,'fXhcp43cdRFJ',0,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZVNV9QV3QTM5HVCEKYJC8','recorded','in_progress',5,'2026-11-17T14:51:29.513Z','vm:25899:17cc8101','2026-11-17T14:52:29.535Z','{"deed":"hang"}',NULL,1,2,NULL,'2026-11-17T14:51:29.513Z','2026-11-17T14:51:29.535Z','2026-11-17T14:51:29.535Z',NULL,NULL,'51PafRGLxrJ5',0,'document-1',1,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZVNXC5B6C583G8E4VR3SF','later','queued',1,'2026-11-17T14:51:29.580Z',NULL,NULL,'{"n":1}','live-key',0,3,NULL,'2026-11-17T14:51:29.580Z','2026-11-17T14:51:29.580Z',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZVNXE5HTPAWNY031AYWFJ','later','queued',5,'2026-11-17T14:52:29.583Z',NULL,NULL,'{"n":2}',NULL,0,3,NULL,'2026-11-17T14:51:29.583Z','2026-11-17T14:51:29.583Z',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZVNXHTFWNZG14AG174Z9A','later','dead_letter',5,'2026-11-17T14:51:29.585Z',NULL,NULL,'{"n":3}',NULL,0,3,NULL,'2026-11-17T14:51:29.585Z','2026-11-17T14:51:29.586Z',NULL,'2026-11-17T14:51:29.586Z',NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,'cancelled');
INSERT INTO job_queue VALUES('01M7MZVNXN0T75PC4TH6MC4YCK','later','queued',5,'2026-11-17T14:51:29.588Z',NULL,NULL,'{"n":5}',NULL,0,3,NULL,'2026-11-17T14:51:29.589Z','2026-11-17T14:51:29.589Z',NULL,NULL,NULL,NULL,0,'document-2',2,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZVNXK9V87XCBK1XH9GEHD','later','dead_letter',5,'2026-11-17T14:51:29.588Z',NULL,NULL,'{"n":4}',NULL,0,3,NULL,'2026-11-17T14:51:29.588Z','2026-11-17T14:51:29.589Z',NULL,'2026-11-17T14:51:29.589Z',NULL,NULL,0,'document-2',1,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,'superseded');
INSERT INTO job_queue VALUES('01M7MZVNY20K91ZZKT2QWAKGK0','recorded','queued',5,'2026-11-17T14:51:29.602Z',NULL,NULL,'{"deed":"fine"}',NULL,0,2,NULL,'2026-11-17T14:51:29.602Z','2026-11-17T14:51:29.602Z',NULL,NULL,NULL,NULL,1,'document-1',2,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZVNYJD59W7WRV3BCDTVDR','later','queued',5,'2026-11-17T14:52:29.618Z',NULL,NULL,'{"n":6}',NULL,0,3,NULL,'2026-11-17T14:51:29.618Z','2026-11-17T14:51:29.618Z',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZVNZ7PN2KY72WET6N7DKG','later','queued',5,'2026-11-17T14:51:29.639Z',NULL,NULL,'{"n":7}',NULL,0,3,NULL,'2026-11-17T14:51:29.639Z','2026-11-17T14:51:29.639Z',NULL,NULL,NULL,NULL,1,NULL,NULL,'{"ids":["01M7MZVNYJD59W7WRV3BCDTVDR"],"ifDead":"wait"}',NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
CREATE TABLE job_events (
  seq INTEGER PRIMARY KEY,
  job_id TEXT NOT NULL,
  at TEXT NOT NULL,
  name TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  worker TEXT,
  detail TEXT
);
INSERT INTO job_events VALUES(1,'01M7MZVNTY9E4V2BTM0N3DA1C1','2026-11-17T14:51:29.534Z','failed',1,'vm:25899:17cc8101','{"name":"Error","code":null,"message":"this one always fails","startedAtMs":1794927089530}');
INSERT INTO job_events VALUES(2,'01M7MZVNTY9E4V2BTM0N3DA1C1','2026-11-17T14:51:29.534Z','retried',1,'vm:25899:17cc8101','{"delayMs":10}');
INSERT INTO job_events VALUES(3,'01M7MZVNV48BAG7TK4BG6P2N31','2026-11-17T14:51:29.534Z','failed',1,'vm:25899:17cc8101','{"name":"Error","code":null,"message":"this one always fails","startedAtMs":1794927089530}');
INSERT INTO job_events VALUES(4,'01M7MZVNV48BAG7TK4BG6P2N31','2026-11-17T14:51:29.534Z','retried',1,'vm:25899:17cc8101','{"delayMs":10}');
INSERT INTO job_events VALUES(5,'01M7MZVNTY9E4V2BTM0N3DA1C1','2026-11-17T14:51:29.545Z','failed',2,'vm:25899:17cc8101','{"name":"Error","code":null,"message":"this one always fails","startedAtMs":1794927089544}');
INSERT INTO job_events VALUES(6,'01M7MZVNTY9E4V2BTM0N3DA1C1','2026-11-17T14:51:29.545Z','dead',2,'vm:25899:17cc8101',NULL);
INSERT INTO job_events VALUES(7,'01M7MZVNV48BAG7TK4BG6P2N31','2026-11-17T14:51:29.545Z','failed',2,'vm:25899:17cc8101','{"name":"Error","code":null,"message":"this one always fails","startedAtMs":1794927089544}');
INSERT INTO job_events VALUES(8,'01M7MZVNV48BAG7TK4BG6P2N31','2026-11-17T14:51:29.545Z','dead',2,'vm:25899:17cc8101',NULL);
INSERT INTO job_events VALUES(9,'01M7MZVNXHTFWNZG14AG174Z9A','2026-11-17T14:51:29.586Z','cancelled',0,NULL,'{"who":"ann","reason":"recorded","startedAtMs":null}');
INSERT INTO job_events VALUES(10,'01M7MZVNXK9V87XCBK1XH9GEHD','2026-11-17T14:51:29.589Z','superseded',0,NULL,'{"by":"01M7MZVNXN0T75PC4TH6MC4YCK"}');
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
INSERT INTO job_after VALUES('01M7MZVNYJD59W7WRV3BCDTVDR','01M7MZVNZ7PN2KY72WET6N7DKG','wait',1);
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
INSERT INTO job_audit VALUES(1,'2026-11-17T14:51:29.766Z','ann','recorded','pause','','paused','{}',NULL,NULL);
CREATE TABLE job_starts (
  type TEXT NOT NULL,
  at_ms INTEGER NOT NULL,
  starts INTEGER NOT NULL
);
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
INSERT INTO millrace_clock VALUES(1,'linux 4ef89e37-72c4-4c74-8862-a966e4a15b74 time:[4026531834]',1794923135404.5061035,NULL,NULL);
CREATE TABLE millrace_records (
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  revision TEXT NOT NULL,
  body TEXT NOT NULL,
  saved_at_ms INTEGER NOT NULL,
  expires_at_ms INTEGER,
  PRIMARY KEY (kind, name)
) WITHOUT ROWID;
INSERT INTO millrace_records VALUES('leader','keeper:reap+schedules+retention','830f0bc1-bdab-4691-91e3-573ee40dd768','{"holder":"vm:25899:17cc8101","number":1,"leaseMs":7500}',1794927089526,1794927097026);
INSERT INTO millrace_records VALUES('pause','paused','ead7dba0-3ea0-4bc1-8d21-c9624cab951c','{"who":"ann","reason":"recorded"}',1794927089754,NULL);
INSERT INTO millrace_records VALUES('schedule','nightly','1c65577e-0a54-4463-9273-1985cbb6d9a8','{"cron":"0 3 * * *","tz":"UTC","startMs":null,"endMs":null,"limit":null,"missed":"one","overlap":"skip","payload":{"n":8},"options":{},"type":"later","defaults":null,"paused":false,"runs":0,"skips":0,"missedTicks":0,"lastTickMs":null,"lastJobId":null,"declared":null,"nextAtMs":1794970800000}',1794927089694,NULL);
INSERT INTO millrace_records VALUES('worker',replace('vm:25899:17cc8101\nrecorded','\n',char(10)),'','{"timestamp":"2026-11-17T14:51:29.525Z","status":"RUNNING","last_message_at":null,"consumer_lag":null,"work":{"host":"vm","pid":25899,"process":"d743834a-a8a1-4893-b6e5-53f246ed775e","startedAtMs":1794927089524,"concurrency":4,"running":0,"jobs":[]}}',1794927089526,1794927119526);
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

