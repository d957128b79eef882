# An application for Puma that reads the file $FILE for each request: with Sinatra if it is installed.
begin
  require 'sinatra/base'
  class Files < Sinatra::Base
    set :environment, :production
    disable :logging
    get('/') { "#{File.binread(ENV['FILE']).size} bytes\n" }
  end
  run Files
rescue LoadError
  run ->(_) { [200, {}, ["#{File.binread(ENV['FILE']).size} bytes\n"]] }
end
