"""The files of a run directory that are made of its data: for people, spreadsheets, pipelines."""
