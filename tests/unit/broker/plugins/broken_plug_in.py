raise ValueError("a broken module")
