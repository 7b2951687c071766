// The console of the hosted service.
