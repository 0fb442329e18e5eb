def check_races(call): pass
