"""Random statements by psycopg 3, prepared in the server, in some sessions that change
their role and settings.  What they find is compared with a dictionary.

    psycopg_oracle.py connection-string seed

The table u has columns k, p, owner, v; a policy shows a role its own rows.  Each value k
is there once at most."""

import random
import sys

import psycopg

ROLES = (None, 'alice', 'bob')
KEYS = 400          # few enough to meet often
ROUNDS = 2500

random.seed(int(sys.argv[2]))
rows = {}           # k: (owner, v)


class Session:
    """A connection, its role, and what it should see."""

    def __init__(self):
        self.connection = psycopg.connect(sys.argv[1], autocommit=True, prepare_threshold=0)
        self.role = None

    def sees(self, k):
        return k in rows and self.role in (None, rows[k][0])

    def expected(self, keys):
        return sorted((k, rows[k][1]) for k in set(keys) if self.sees(k))

    def check(self, what, found, keys):
        found, expected = sorted(found), self.expected(keys)
        if found != expected:
            sys.exit(f'{what} as {self.role}: {found}, not {expected}')

    def run(self, query, values=()):
        return self.connection.execute(query, values)

    def owner(self):
        return self.role or random.choice(ROLES[1:])


def key():
    # psycopg gives small numbers other types than large ones.
    return random.choice((1, 1000, 10 ** 11)) * random.randrange(KEYS)


def equal(s):
    k = key()
    s.check(f'k = {k}', s.run('SELECT k, v FROM u WHERE k = %s', [k]), [k])


def between(s):
    low = key()
    high = low + random.randrange(20)
    s.check(f'{low} to {high}', s.run('SELECT k, v FROM u WHERE k BETWEEN %s AND %s', [low, high]), range(low, high + 1))


def some(s):
    keys = [key() for _ in range(random.randrange(6))]
    s.check(f'any of {keys}', s.run('SELECT k, v FROM u WHERE k = ANY (%s)', [keys]), keys)


def joined(s):
    keys = [key() for _ in range(4)]
    s.check(f'joined {keys}', s.run('SELECT u.k, u.v FROM unnest(%s::bigint[]) d (k) JOIN u USING (k) GROUP BY 1, 2', [keys]), keys)


def constant(s):
    k = key()
    s.check(f'the constant {k}', s.run(f'SELECT k, v FROM u WHERE k = {k}'), [k])


def cursor(s):
    low = key()
    with s.connection.transaction(), s.connection.cursor(name='c') as c:
        c.itersize = 3
        c.execute('SELECT k, v FROM u WHERE k BETWEEN %s AND %s', [low, low + 10])
        s.check(f'cursor from {low}', c, range(low, low + 11))


def insert(s):
    k, owner, v = key(), s.owner(), random.randrange(100)
    if k not in rows:
        s.run('INSERT INTO u VALUES (%s, %s, %s, %s)', [k, random.randrange(12), owner, v])
        rows[k] = (owner, v)


def insert_many(s):
    keys = {k for k in (key() for _ in range(5)) if k not in rows}
    owner = s.owner()
    with s.connection.cursor() as c:
        c.executemany('INSERT INTO u VALUES (%s, %s, %s, %s)', [(k, random.randrange(12), owner, 1) for k in keys])
    rows.update((k, (owner, 1)) for k in keys)


def copy(s):
    keys = {k for k in (key() for _ in range(5)) if k not in rows}
    if s.role is None:      # COPY does not go with policies
        with s.connection.cursor() as c, c.copy('COPY u FROM STDIN') as data:
            for k in keys:
                data.write_row((k, random.randrange(12), 'bob', 2))
        rows.update((k, ('bob', 2)) for k in keys)


def update(s):
    k, v = key(), random.randrange(100)
    s.run('UPDATE u SET v = %s, p = %s WHERE k = %s', [v, random.randrange(12), k])
    if s.sees(k):
        rows[k] = (rows[k][0], v)


def change(s):
    k, new = key(), key()
    if new not in rows:
        s.run('UPDATE u SET k = %s WHERE k = %s', [new, k])
        if s.sees(k):
            rows[new] = rows.pop(k)


def delete(s):
    k = key()
    s.run('DELETE FROM u WHERE k = %s', [k])
    if s.sees(k):
        del rows[k]


def pipeline(s):
    k, owner = key(), s.owner()
    if k not in rows:
        with s.connection.pipeline():
            before = s.run('SELECT k, v FROM u WHERE k = %s', [k])
            s.run('INSERT INTO u VALUES (%s, %s, %s, 7)', [k, random.randrange(12), owner])
            after = s.run('SELECT k, v FROM u WHERE k = %s', [k])
            s.check(f'pipeline {k}', before, [k])
            rows[k] = (owner, 7)
            s.check(f'pipeline {k}, inserted', after, [k])


def rolled_back(s):
    k, owner = key(), s.owner()
    if k not in rows:
        with s.connection.transaction(force_rollback=True):
            s.run('INSERT INTO u VALUES (%s, %s, %s, 8)', [k, random.randrange(12), owner])
            rows[k] = (owner, 8)
            s.check(f'{k}, to be rolled back', s.run('SELECT k, v FROM u WHERE k = %s', [k]), [k])
            del rows[k]


def set_role(s):
    s.role = random.choice(ROLES)
    s.run(f'SET ROLE {s.role or "NONE"}')


def set_enable(s):
    s.run(f'SET rangefilter.enable = {random.choice(("on", "on", "off"))}')


def set_plans(s):
    s.run(f'SET plan_cache_mode = {random.choice(("auto", "force_generic_plan", "force_custom_plan"))}')


def discard(s):
    what = random.choice(('PLANS', 'ALL'))
    s.run(f'DISCARD {what}')
    if what == 'ALL':
        s.role = None
        s.run('ROLLBACK')       # has psycopg forget what it has prepared


def vacuum(s):
    if s.role is None:
        s.run(f'VACUUM u{random.randrange(12)}')


ACTIONS = {equal: 20, between: 10, some: 10, joined: 6, constant: 6, cursor: 4, insert: 20, insert_many: 3, copy: 2, update: 8,
           change: 6, delete: 12, pipeline: 6, rolled_back: 4, set_role: 8, set_enable: 3, set_plans: 3, discard: 1, vacuum: 1}

sessions = [Session() for _ in range(3)]
for action in random.choices(list(ACTIONS), list(ACTIONS.values()), k=ROUNDS):
    action(random.choice(sessions))
for session in sessions:
    session.run('ROLLBACK')
    session.check('all rows', session.run('SELECT k, v FROM u'), rows)
    session.connection.close()
