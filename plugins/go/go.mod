module systoll.invalid/systolltest

go 1.21
