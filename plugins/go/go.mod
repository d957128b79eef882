module systoll.invalid/systoll/plugins/go

go 1.21
