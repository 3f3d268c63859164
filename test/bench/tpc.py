"""Tables, data and queries of TPC-DS or TPC-H, by the generators in the Python package duckdb.

tpc.py ds|h SCALE DIRECTORY writes there TABLE.csv, schema.sql (tables and their
rows; to be run by psql in DIRECTORY), indexes.sql and NAME.sql for each query.
"""
import re
import sys

import duckdb

# Tables in partitions: column and step.  Days of TPC-DS are numbers.
FACTS = {
    'ds': {
        'store_sales': ('ss_sold_date_sk', 15),
        'store_returns': ('sr_returned_date_sk', 20),
        'catalog_sales': ('cs_sold_date_sk', 23),
        'catalog_returns': ('cr_returned_date_sk', 30),
        'web_sales': ('ws_sold_date_sk', 23),
        'web_returns': ('wr_returned_date_sk', 35),
        'inventory': ('inv_date_sk', 30),
    },
    'h': {
        'lineitem': ('l_shipdate', '1 month'),
        'orders': ('o_orderdate', '1 month'),
    },
}

# Columns with range filters: what joins and dates compare.
KEY = re.compile(r'_sk$|_number$|_\w*key$|date$')
NO_KEY = re.compile(r'linenumber$')


def partitions(con, table, column, step):
    low, high = con.execute(f'SELECT min({column}), max({column}) FROM {table}').fetchone()
    if isinstance(step, int):
        bounds = f'generate_series({low}, {high}, {step}) low, LATERAL (SELECT low + {step}) h(high)'
    else:
        bounds = (f"generate_series(date_trunc('month', '{low}'::date), '{high}', '{step}') l(t), "
                  f"LATERAL (SELECT t::date, (t + '{step}')::date) h(low, high)")
    return (f"SELECT format('CREATE TABLE {table}_%s PARTITION OF {table} FOR VALUES FROM (%L) TO (%L)', "
            f'row_number() OVER (), low, high) FROM {bounds}\n\\gexec\n'
            f'CREATE TABLE {table}_other PARTITION OF {table} DEFAULT;\n')


def primary_key(table, columns):
    return columns[:2] if table == 'partsupp' else columns[:1]


def write_schema(con, suite, directory):
    schema = open(f'{directory}/schema.sql', 'w')
    indexes = open(f'{directory}/indexes.sql', 'w')
    for (table,) in con.execute('SELECT table_name FROM duckdb_tables() ORDER BY 1').fetchall():
        columns = con.execute('SELECT column_name, data_type FROM duckdb_columns() '
                              'WHERE table_name = ? ORDER BY column_index', [table]).fetchall()
        names = [name for name, _ in columns]
        fact = FACTS[suite].get(table)
        con.execute(f"COPY {table} TO '{directory}/{table}.csv' (HEADER false)")
        schema.write(f"CREATE TABLE {table} ({', '.join(f'{n} {t}' for n, t in columns)})")
        if fact:
            schema.write(f' PARTITION BY RANGE ({fact[0]});\n' + partitions(con, table, *fact))
            for name in names:
                if KEY.search(name) and not NO_KEY.search(name):
                    indexes.write(f'CREATE INDEX ON {table} USING rangefilter ({name});\n')
        else:
            schema.write(';\n')
            indexes.write(f"ALTER TABLE {table} ADD PRIMARY KEY ({', '.join(primary_key(table, names))});\n")
        schema.write(f"\\copy {table} FROM '{directory}/{table}.csv' (FORMAT csv)\n")


def write_queries(con, suite, directory):
    for number, text in con.execute(f'SELECT query_nr, query FROM tpc{suite}_queries()').fetchall():
        with open(f'{directory}/q{number:02}.sql', 'w') as file:
            file.write(text.rstrip().rstrip(';') + '\n')


def main():
    suite, scale, directory = sys.argv[1:]
    con = duckdb.connect(f'{directory}/data.duckdb')
    con.execute("SET memory_limit = '3GB'")
    con.execute('SET threads = 2')
    con.execute(f"CALL {'dsdgen' if suite == 'ds' else 'dbgen'}(sf = {scale})")
    write_schema(con, suite, directory)
    write_queries(con, suite, directory)


main()
